# Builds the image alphagat:latest of cluster/jobset.yaml, with the versions of requirements.lock.
#
#   docker build -t alphagat .                               # for CPUs
#   docker build -t alphagat --build-arg EXTRAS=cuda12 .     # for NVIDIA GPUs; the wheels contain CUDA
#   docker run --rm -it -v "$PWD/runs:/runs" alphagat train quickstart --workdir /runs/quickstart    # GPUs: --gpus all
FROM python:3.12-slim

ARG EXTRAS=engines,pretrain,solvers
COPY . /src
RUN pip install --no-cache-dir -c /src/requirements.lock "/src[${EXTRAS}]" && rm -rf /src
WORKDIR /work
ENTRYPOINT ["alphagat"]
