package trip

func argument(p *parcel) { p.label = "seen" }
