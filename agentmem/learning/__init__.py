"""Learning from experience: distillation, revision, gate, and the loop of Training-Free GRPO."""
