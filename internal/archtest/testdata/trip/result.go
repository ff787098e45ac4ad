package trip

func result(p *parcel) { p.label = "seen" }
