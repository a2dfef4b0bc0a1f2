"""A simulated learner: a made-up world with known lessons, so that ways of learning can be compared exactly."""
