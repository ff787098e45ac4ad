package schema

// evaluated is which members and items of a value a schema is about, for
// unevaluatedProperties and unevaluatedItems. Schemas without those do not note it.
type evaluated struct {
	noted    bool
	members  map[string]bool
	items    map[int]bool
	allItems bool
}

func (e *evaluated) member(name string) {
	if !e.noted {
		return
	}
	if e.members == nil {
		e.members = map[string]bool{}
	}
	e.members[name] = true
}

func (e *evaluated) item(i int) {
	if !e.noted || e.allItems {
		return
	}
	if e.items == nil {
		e.items = map[int]bool{}
	}
	e.items[i] = true
}

// merge adds what another schema is about. It calls step with how much work that is.
func (e *evaluated) merge(step func(int), other *evaluated) {
	if !e.noted {
		return
	}
	step(len(other.members) + len(other.items))
	for name := range other.members {
		e.member(name)
	}
	for i := range other.items {
		e.item(i)
	}
	e.allItems = e.allItems || other.allItems
}

func (e *evaluated) hasItem(i int) bool { return e.allItems || e.items[i] }
