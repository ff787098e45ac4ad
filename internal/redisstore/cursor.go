package redisstore

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// cursor reads a sorted set page by page, each from the score at which the one before ended: so what
// is added or removed meanwhile moves nothing else past it. Pages grow, because as many members as
// there are may have one score.
type cursor struct {
	key    string
	newest bool           // the largest scores come first
	rest   redis.ZRangeBy // what has not been read, and the size of the next page
	reply  *redis.ZSliceCmd
	last   int64           // the score at which the last page ended
	seen   map[string]bool // the members with that score that were read
	done   bool
}

// pageGrowth is by how much a page is larger than the one before.
const pageGrowth = 4

// ask asks for the next page; a pipeline is only executed later.
func (c *cursor) ask(ctx context.Context, client redis.Cmdable) {
	if c.newest {
		c.reply = client.ZRevRangeByScoreWithScores(ctx, c.key, &c.rest)
	} else {
		c.reply = client.ZRangeByScoreWithScores(ctx, c.key, &c.rest)
	}
}

// take returns what is new in the page that was asked for.
func (c *cursor) take() []redis.Z {
	page := c.reply.Val()
	c.done = int64(len(page)) < c.rest.Count
	if len(page) == 0 {
		return nil
	}
	last := int64(page[len(page)-1].Score)
	page = slices.DeleteFunc(page, func(z redis.Z) bool { return c.seen[member(z)] })
	if c.seen == nil || c.last != last {
		c.last, c.seen = last, map[string]bool{}
	}
	for _, z := range page {
		if int64(z.Score) == last {
			c.seen[member(z)] = true
		}
	}
	if bound := strconv.FormatInt(last, 10); c.newest {
		c.rest.Max = bound
	} else {
		c.rest.Min = bound
	}
	c.rest.Count *= pageGrowth
	return page
}

// past reports whether all members up to that score, and with it, have been read.
func (c *cursor) past(score int64) bool {
	if c.newest {
		return c.done || score > c.last
	}
	return c.done || score < c.last
}
