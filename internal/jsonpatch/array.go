package jsonpatch

import "strconv"

// array compares the items of two arrays. Those that have stayed are found by their hashes; in between,
// items are compared one by one, as far as there are some on both sides.
func (d *differ) array(i, j int32) {
	before, after := items(d.a, i), items(d.b, j)
	start := 0
	for start < len(before) && start < len(after) && d.equal(before[start], after[start]) {
		start++
	}
	endA, endB := len(before), len(after)
	for endA > start && endB > start && d.equal(before[endA-1], after[endB-1]) {
		endA, endB = endA-1, endB-1
	}
	place := start // in the array as it is after the operations so far
	atA, atB := start, start
	gap := func(toA, toB int) {
		for ; atA < toA && atB < toB; atA, atB, place = atA+1, atB+1, place+1 {
			d.item(place, before[atA], after[atB])
		}
		for ; atA < toA; atA++ {
			back := d.at(place)
			d.op("remove", -1)
			d.path = d.path[:back]
		}
		for ; atB < toB; atB, place = atB+1, place+1 {
			back := d.at(place)
			d.op("add", after[atB])
			d.path = d.path[:back]
		}
	}
	if start < endA && start < endB {
		for _, kept := range d.kept(before[start:endA], after[start:endB]) {
			gap(start+kept.a, start+kept.b)
			d.item(place, before[atA], after[atB]) // hashes may lie
			atA, atB, place = atA+1, atB+1, place+1
		}
	}
	gap(endA, endB)
}

// items returns the items of an array.
func items(t *tape, i int32) []int32 {
	list := make([]int32, 0, t.nodes[i].count)
	for m, k := i+1, int32(0); k < t.nodes[i].count; m, k = t.nodes[m].next, k+1 {
		list = append(list, m)
	}
	return list
}

// equal reports whether two values are equal.
func (d *differ) equal(i, j int32) bool {
	return d.a.nodes[i].hash == d.b.nodes[j].hash && d.same(i, j)
}

// item compares two items of which one takes the other's place.
func (d *differ) item(place int, i, j int32) {
	if d.equal(i, j) {
		return
	}
	back := d.at(place)
	d.value(i, j)
	d.path = d.path[:back]
}

// at adds an index to the path, and returns how long the path was.
func (d *differ) at(place int) (back int) {
	back = len(d.path)
	d.path = strconv.AppendInt(append(d.path, '/'), int64(place), 10)
	return back
}

// stayed is an item that has stayed, by its places.
type stayed struct{ a, b int }

// maxEdits bounds how many items are looked for that came or went: the work grows with its square.
const maxEdits = 128

// kept returns items that have stayed, in order: as many as possible, by Myers' algorithm. If more items
// came and went than maxEdits it returns none.
func (d *differ) kept(before, after []int32) []stayed {
	n, m := len(before), len(after)
	most := min(n+m, maxEdits)
	// furthest[k+most] is how far one gets in before on the diagonal k.
	furthest := make([]int32, 2*most+2)
	var trace [][]int32
	for edits := 0; edits <= most; edits++ {
		trace = append(trace, append([]int32(nil), furthest[most-edits:most+edits+2]...))
		for k := -edits; k <= edits; k += 2 {
			var x int
			if k == -edits || k != edits && furthest[k-1+most] < furthest[k+1+most] {
				x = int(furthest[k+1+most])
			} else {
				x = int(furthest[k-1+most]) + 1
			}
			y := x - k
			for x < n && y < m && y >= 0 && d.a.nodes[before[x]].hash == d.b.nodes[after[y]].hash {
				x, y = x+1, y+1
			}
			furthest[k+most] = int32(x)
			if x >= n && y >= m {
				return walkBack(trace, n, m)
			}
		}
	}
	return nil
}

// walkBack returns the items that have stayed on the way that was found.
func walkBack(trace [][]int32, x, y int) []stayed {
	var list []stayed
	for edits := len(trace) - 1; edits > 0; edits-- {
		v, k := trace[edits], x-y // v[0] is the diagonal -edits
		at := func(k int) int { return int(v[k+edits]) }
		from := k - 1
		if k == -edits || k != edits && at(k-1) < at(k+1) {
			from = k + 1
		}
		fromX := at(from)
		fromY := fromX - from
		for x > fromX && y > fromY {
			x, y = x-1, y-1
			list = append(list, stayed{x, y})
		}
		x, y = fromX, fromY
	}
	for x > 0 && y > 0 {
		x, y = x-1, y-1
		list = append(list, stayed{x, y})
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}
