package rings

// alone uses nothing.
const alone = "alone"
