"""What an attempt is worth: the protocol of a reward, the rewards that ship, and any callable as one."""
