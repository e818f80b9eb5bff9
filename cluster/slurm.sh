#!/bin/bash
# Trains on several nodes, one process per GPU:
#   sbatch cluster/slurm.sh configs/connect_four.py /shared/c4 --config.selfplay.num_groups=16
# The processes find each other through Slurm's environment. Five minutes before the time limit the job receives SIGTERM,
# saves, and exits with status 75. It is then requeued, and resumes. If it needs longer to save, Slurm ends it at the limit
# and does not requeue it.
#SBATCH --job-name=alphagat
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=8
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append

set -u
config=${1:?name a config file} workdir=${2:?name a run folder on a disk that all nodes share}
shift 2

# 0: with 1, the first process that exits with 75 has the others killed, and the status becomes 137 (128 + SIGKILL). If a
# process dies, the others notice within half a minute, and end. Since Slurm 22.05, srun no longer takes --cpus-per-task
# from the job.
srun --kill-on-bad-exit=0 --cpus-per-task="${SLURM_CPUS_PER_TASK:-8}" alphagat train --config "$config" --workdir "$workdir" "$@"
status=$?
if [ "$status" -eq 75 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
