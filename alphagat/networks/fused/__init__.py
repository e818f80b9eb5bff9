"""All blocks of a GAT as one GPU kernel, with the activations of a position on the chip from the first to the last.

The unfused blocks move about fifty arrays of activations per block through memory. The kernel reads the input of the
first block and writes the output of the last; the weights come from the L2 cache. It computes `gat.MessageBlock` for
each of the kinds of blocks, on shapes padded with zeros to powers of two, which Triton needs. With n the normalized
features, the message of a "mixing+attention" block is

    (sum_h softmax(n Q_h (n K_h)^T + bias_h) (n V) e_h  +  sum_s M_s (n V) e_s) O

over heads h and groups s of features, where e keeps the features of a head or a group and is 0 for the others.

`weights` packs the parameters, `kernel` is the kernel (Pallas with its Triton backend), and `network` is the interface
for other packages. The gradient comes from XLA's operations: a kernel for it, which computed each block again from its
input, was slower on an H200.
"""
