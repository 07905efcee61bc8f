package data

import (
	"cmp"
	"context"
	"html/template"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Rows is the number of rows of the tables world and cachedworld.
const Rows = 10_000

// World is a row of world and of cachedworld.
type World struct {
	ID           int32 `json:"id"`
	RandomNumber int32 `json:"randomNumber"`
}

// Fortune is a row of fortune.
type Fortune struct {
	ID      int32
	Message string
}

const selectWorld = "SELECT id, randomnumber FROM world WHERE id = $1"

func randomID() int32 { return rand.Int32N(Rows) + 1 }

// One reads a random row.
func (s *Source) One(ctx context.Context) (w World, err error) {
	err = s.pool.QueryRow(ctx, selectWorld, randomID()).Scan(&w.ID, &w.RandomNumber)
	return w, err
}

// Many reads n random rows, each with a separate query.
func (s *Source) Many(ctx context.Context, n int) ([]World, error) {
	worlds := make([]World, n)
	for i := range worlds {
		var err error
		if worlds[i], err = s.One(ctx); err != nil {
			return nil, err
		}
	}
	return worlds, nil
}

// Update reads n random rows, each with a separate query, and writes a new number into each row. The rows are
// updated in the order of their IDs, so that two requests cannot wait for each other.
func (s *Source) Update(ctx context.Context, n int) ([]World, error) {
	worlds, err := s.Many(ctx, n)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(worlds, func(a, b World) int { return cmp.Compare(a.ID, b.ID) })
	worlds = slices.CompactFunc(worlds, func(a, b World) bool { return a.ID == b.ID })
	for len(worlds) < n { // the same row was read more than once
		w, err := s.One(ctx)
		if err != nil {
			return nil, err
		}
		if at, found := slices.BinarySearchFunc(worlds, w, func(a, b World) int { return cmp.Compare(a.ID, b.ID) }); !found {
			worlds = slices.Insert(worlds, at, w)
		}
	}
	var batch pgx.Batch
	for i := range worlds {
		worlds[i].RandomNumber = randomID()
		batch.Queue("UPDATE world SET randomnumber = $1 WHERE id = $2", worlds[i].RandomNumber, worlds[i].ID)
	}
	return worlds, s.pool.SendBatch(ctx, &batch).Close()
}

// Cached returns n random rows from memory.
func (s *Source) Cached(n int) []World {
	worlds := make([]World, n)
	for i := range worlds {
		worlds[i] = s.cache[randomID()]
	}
	return worlds
}

func (s *Source) fillCache(ctx context.Context) error {
	rows, err := s.pool.Query(ctx, "SELECT id, randomnumber FROM cachedworld")
	if err != nil {
		return err
	}
	worlds, err := pgx.CollectRows(rows, pgx.RowToStructByPos[World])
	if err != nil {
		return err
	}
	s.cache = make(map[int32]World, len(worlds))
	for _, w := range worlds {
		s.cache[w.ID] = w
	}
	return nil
}

// Fortunes reads all fortunes, adds another one, and sorts them by their messages.
func (s *Source) Fortunes(ctx context.Context) ([]Fortune, error) {
	rows, err := s.pool.Query(ctx, "SELECT id, message FROM fortune")
	if err != nil {
		return nil, err
	}
	fortunes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Fortune])
	if err != nil {
		return nil, err
	}
	fortunes = append(fortunes, Fortune{Message: "Additional fortune added at request time."})
	slices.SortFunc(fortunes, func(a, b Fortune) int { return cmp.Compare(a.Message, b.Message) })
	return fortunes, nil
}

// Page is the template of the page that lists the fortunes.
var Page = template.Must(template.New("fortunes").Parse(`<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>` +
	`<tr><th>id</th><th>message</th></tr>{{range .}}<tr><td>{{.ID}}</td><td>{{.Message}}</td></tr>{{end}}</table></body></html>`))

// Slow waits for a query that takes 20 ms.
func (s *Source) Slow(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, "SELECT pg_sleep(0.02)")
	return err
}
