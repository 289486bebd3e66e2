"""How anything is learnt: the loop, the losses, the parameters that move, and the work of several processes."""
