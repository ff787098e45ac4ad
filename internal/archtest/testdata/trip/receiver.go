package trip

func (p *parcel) receiver() { p.label = "seen" }
