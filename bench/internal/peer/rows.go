package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/bench/peers/db/data"
)

// Rows reads a table of the database without a peer.
type Rows interface {
	Number(ctx context.Context, table string, id int32) (int32, error)
}

// rowChecks has the checks of the peers that use the database. Their responses differ between requests.
var rowChecks = []Check{
	{Name: "db", rows: checkOne},
	{Name: "queries", rows: many("/queries", "world")},
	{Name: "updates", rows: many("/updates", "world")},
	{Name: "cached", rows: many("/cached", "cachedworld")},
	{Name: "fortunes", rows: checkFortunes},
	{Name: "slow", rows: checkSlow},
	{Name: "wait", rows: checkWaits, WithoutDatabase: true},
	{Name: "compute", rows: checkCompute, WithoutDatabase: true},
}

// An asker sends requests to one server.
type asker struct {
	client *http.Client
	base   string
}

// longWithout is the length in bytes above which frameworks that are based on net/http send chunks instead of a
// Content-Length.
const longWithout = 2048

// get returns the body of a response, which must have the given media type. A short response must have a
// Content-Length.
func (a asker) get(ctx context.Context, path, contentType string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: read the body: %w", path, err)
	}
	if answer.ContentLength != int64(len(body)) && (answer.ContentLength >= 0 || len(body) < longWithout) {
		return nil, fmt.Errorf("%s: Content-Length %d of %d bytes", path, answer.ContentLength, len(body))
	}
	return body, Check{Path: path, ContentType: contentType}.judge(answer, body, 0)
}

// worlds parses JSON strictly: each object must have all members and no other members.
func worlds(path string, text []byte) ([]data.World, error) {
	var found []map[string]*int32
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, fmt.Errorf("%s: %w in %.80q", path, err, text)
	}
	rows := make([]data.World, len(found))
	for i, row := range found {
		id, number := row["id"], row["randomNumber"]
		if len(row) != 2 || id == nil || number == nil {
			return nil, fmt.Errorf("%s: a row is not of the members id and randomNumber: %.80q", path, text)
		}
		rows[i] = data.World{ID: *id, RandomNumber: *number}
	}
	return rows, nil
}

// compare returns an error if rows differ from the table.
func compare(ctx context.Context, path string, got []data.World, table string, rows Rows) error {
	for _, row := range got {
		want, err := rows.Number(ctx, table, row.ID)
		if err != nil {
			return fmt.Errorf("%s: row %d: %w", path, row.ID, err)
		}
		if row.RandomNumber != want {
			return fmt.Errorf("%s: row %d has the number %d, the table %s %d", path, row.ID, row.RandomNumber, table, want)
		}
	}
	return nil
}

// differ returns an error if the rows do not seem to be chosen at random.
func differ(path string, rows []data.World) error {
	for _, row := range rows[1:] {
		if row.ID != rows[0].ID {
			return nil
		}
	}
	return fmt.Errorf("%s: %d rows, all with the id %d", path, len(rows), rows[0].ID)
}

func checkOne(ctx context.Context, a asker, rows Rows) error {
	var all []data.World
	for range 10 {
		body, err := a.get(ctx, "/db", "application/json")
		if err != nil {
			return err
		}
		one, err := worlds("/db", slices.Concat([]byte("["), body, []byte("]")))
		if err != nil {
			return err
		}
		all = append(all, one...)
	}
	if err := differ("/db", all); err != nil {
		return err
	}
	return compare(ctx, "/db", all, "world", rows)
}

// many checks a route that returns as many rows as the parameter n requests. The number is limited by TechEmpower's
// rules.
func many(path, table string) func(ctx context.Context, a asker, rows Rows) error {
	return func(ctx context.Context, a asker, rows Rows) error {
		for _, count := range []struct {
			n    string
			want int
		}{{"20", 20}, {"", 1}, {"0", 1}, {"foo", 1}, {"501", 500}} {
			path := path + "?n=" + count.n
			body, err := a.get(ctx, path, "application/json")
			if err != nil {
				return err
			}
			got, err := worlds(path, body)
			if err != nil {
				return err
			}
			if len(got) != count.want {
				return fmt.Errorf("%s: %d rows, want %d", path, len(got), count.want)
			}
			if err := compare(ctx, path, got, table, rows); err != nil {
				return err
			}
			if count.want > 1 {
				if err := differ(path, got); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// fortunes has the rows of the page, sorted and escaped.
var fortunes = []string{
	`11</td><td>&lt;script&gt;alert(&#34;This should not be displayed in a browser alert box.&#34;);&lt;/script&gt;`,
	`4</td><td>A bad random number generator: 1, 1, 1, 1, 1, 4.33e&#43;67, 1, 1, 1`,
	`5</td><td>A computer program does what you tell it to do, not what you want it to do.`,
	`2</td><td>A computer scientist is someone who fixes things that aren&#39;t broken.`,
	`8</td><td>A list is only as strong as its weakest link. — Donald Knuth`,
	`0</td><td>Additional fortune added at request time.`,
	`3</td><td>After enough decimal places, nobody gives a damn.`,
	`7</td><td>Any program that runs right is obsolete.`,
	`10</td><td>Computers make very fast, very accurate mistakes.`,
	`6</td><td>Emacs is a nice operating system, but I prefer UNIX. — Tom Christaensen`,
	`9</td><td>Feature: A bug with seniority.`,
	`1</td><td>fortune: No such file or directory`,
	`12</td><td>フレームワークのベンチマーク`,
}

func checkFortunes(ctx context.Context, a asker, _ Rows) error {
	body, err := a.get(ctx, "/fortunes", "text/html")
	if err != nil {
		return err
	}
	want := `<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>` +
		`<tr><td>` + strings.Join(fortunes, `</td></tr><tr><td>`) + `</td></tr></table></body></html>`
	if string(body) != want {
		return fmt.Errorf("/fortunes: %s", firstDifference(body, []byte(want)))
	}
	return nil
}

// waiting checks a response that the server must delay by at least the duration least.
func (a asker) waiting(ctx context.Context, path string, least time.Duration) error {
	start := time.Now()
	if _, err := a.get(ctx, path, "text/plain"); err != nil {
		return err
	}
	if took := time.Since(start); took < least {
		return fmt.Errorf("%s: answered after %v, want at least %v", path, took, least)
	}
	return nil
}

func checkSlow(ctx context.Context, a asker, _ Rows) error {
	return a.waiting(ctx, "/slow", 20*time.Millisecond)
}

func checkCompute(ctx context.Context, a asker, _ Rows) error {
	return a.waiting(ctx, "/compute", 200*time.Microsecond)
}

// checkWaits sends many requests with different waits at the same time. Each response must belong to its own request.
func checkWaits(ctx context.Context, a asker, _ Rows) error {
	const clients = 64
	var asking sync.WaitGroup
	failed := make([]error, clients)
	for i := range clients {
		asking.Go(func() {
			wait := time.Duration(10*i) * time.Microsecond
			path := fmt.Sprintf("/wait?us=%d", wait.Microseconds())
			start := time.Now()
			body, err := a.get(ctx, path, "text/plain")
			switch took := time.Since(start); {
			case err != nil:
				failed[i] = err
			case string(body) != wait.String():
				failed[i] = fmt.Errorf("%s: %.40q, want %q", path, body, wait.String())
			case took < wait:
				failed[i] = fmt.Errorf("%s: answered after %v", path, took)
			}
		})
	}
	asking.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}
