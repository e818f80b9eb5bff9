"""All blocks of a GAT as one GPU kernel, with the activations of a position on the chip from the first to the last.

The unfused blocks move about fifty arrays of activations per block through memory. The kernel reads the input of the
first block and writes the output of the last; the weights come from the L2 cache. It computes `gat.MessageBlock` for
each of the kinds of blocks, on shapes padded with zeros to powers of two, which Triton needs. With n the normed
features, the message of a "mixing+attention" block is

    sum_h softmax(n Q_h (n K_h)^T + bias_h) (n V_h) O_h  +  sum_s M_s (n V_s) O_s

over heads h and groups s of features, where V and O are split along the features of a head or a group: mixing shares
the values of the attention, which the kernel computes again per group.

`weights` packs the parameters for the kernels; `forward` and `backward` are the kernels, written for Pallas's Triton
backend; `network` gives the fused network to everyone else.
"""
