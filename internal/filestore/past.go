package filestore

import (
	"bytes"
	"errors"
	"math/big"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-agents/holdfast/internal/filestore/folder"
	"github.com/holdfast-agents/holdfast/store"
)

// Lists go on behind what is damaged. Pebble reports damage of a block only as an error of the
// read that comes to it, and does not say where the next block begins; but a seek behind the
// damage succeeds, so the place can be searched for.

// ascendPast is ascend, except that it goes on behind what is damaged. It returns the
// last damage that it has passed, and an error of anything else.
func (v view) ascendPast(prefix, from []byte, f func(key, value []byte) (bool, error)) (damage, err error) {
	for from != nil {
		var last []byte
		err := folder.Guard(func() error {
			return v.ascend(prefix, from, func(key, value []byte) (bool, error) {
				last = append(last[:0], key...)
				more := false
				err := folder.Guard(func() (err error) {
					more, err = f(key, value)
					return err
				})
				if errors.Is(err, store.ErrUnreadable) {
					damage, more, err = err, true, nil
				}
				return more, err
			})
		})
		if !errors.Is(err, store.ErrUnreadable) {
			return damage, err
		}
		damage = err
		if last != nil {
			from = append(last, 0)
		}
		from = v.behind(from, end(prefix))
	}
	return damage, nil
}

// behind returns the first key it finds that is not before from, in front of which
// something is damaged; nil if there is none before to.
func (v view) behind(from, to []byte) []byte {
	const precision = 16 // bytes behind those that both have in common
	size := precision
	for size-precision < min(len(from), len(to)) && from[size-precision] == to[size-precision] {
		size++
	}
	bad, good := number(from, size), number(to, size)
	var found []byte
	for {
		middle := new(big.Int).Add(bad, good)
		middle.Rsh(middle, 1)
		if middle.Cmp(bad) <= 0 {
			return found
		}
		key, err := v.first(middle.FillBytes(make([]byte, size)), to)
		if err != nil {
			bad = middle
			continue
		}
		good, found = middle, key
	}
}

// number is the beginning of a key as a number, so that keys have a middle.
func number(key []byte, size int) *big.Int {
	b := make([]byte, size)
	copy(b, key)
	return new(big.Int).SetBytes(b)
}

// first returns the first key from one on up to another; nil if there is none.
func (v view) first(from, to []byte) (key []byte, err error) {
	err = folder.Guard(func() error {
		it, err := v.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
		if err != nil {
			return err
		}
		if it.First() {
			key = bytes.Clone(it.Key())
		}
		return it.Close()
	})
	return key, err
}
