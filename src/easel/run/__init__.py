"""Running jobs: the life cycle, the queue, the agent beside each job, and the executors that hold devices."""
