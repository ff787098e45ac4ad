package cycle

// alone uses nothing.
const alone = "alone"
