"""What acts: the ReAct agent, any callable wrapped, and the sampler that draws many attempts at once."""
