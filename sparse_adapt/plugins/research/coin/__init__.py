"""Words of a collection replaced by invented ones, and how much of the loss an adaptation brings back."""
