package trip

type crate struct{ holds *parcel }

func literal(c *crate) { c.holds.label = "seen" }
