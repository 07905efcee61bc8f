package peer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/bench/peers/db/data"
)

// table is a table in which each row has its id as its number.
type table struct{}

func (table) Number(_ context.Context, _ string, id int32) (int32, error) { return id, nil }

// served answers all checks of rows with bodies, and others with an error.
func served(t *testing.T, faults map[string]string) *httptest.Server {
	mux := http.NewServeMux()
	next := 0
	row := func() string {
		next++
		return fmt.Sprintf(`{"id":%d,"randomNumber":%d}`, next, next)
	}
	answer := func(path, contentType string, body func(r *http.Request) string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			fault, wrong := faults[path]
			switch {
			case fault == "chunked":
				fmt.Fprint(w, body(r))
				http.NewResponseController(w).Flush()
			case wrong:
				fmt.Fprint(w, fault)
			default:
				fmt.Fprint(w, body(r))
			}
		})
	}
	answer("/db", "application/json", func(*http.Request) string { return row() })
	for _, path := range []string{"/queries", "/updates", "/cached"} {
		answer(path, "application/json", func(r *http.Request) string {
			rows := make([]string, data.Count(r.FormValue("n")))
			for i := range rows {
				rows[i] = row()
			}
			return "[" + strings.Join(rows, ",") + "]"
		})
	}
	answer("/fortunes", data.HTML, func(*http.Request) string {
		page, list := new(strings.Builder), []data.Fortune{{ID: 0, Message: "Additional fortune added at request time."}}
		for _, row := range fortunes {
			f := data.Fortune{}
			id, message, _ := strings.Cut(row, "</td><td>")
			fmt.Sscan(id, &f.ID)
			f.Message = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&#43;", "+").Replace(message)
			if f.ID > 0 {
				list = append(list, f)
			}
		}
		slices.SortFunc(list, func(a, b data.Fortune) int { return strings.Compare(a.Message, b.Message) })
		if err := data.Page.Execute(page, list); err != nil {
			t.Error(err)
		}
		return page.String()
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func TestRowsAreJudged(t *testing.T) {
	for _, test := range []struct {
		check, path, fault string
		complaint          string // "": none
	}{
		{"db", "", "", ""},
		{"queries", "", "", ""},
		{"updates", "", "", ""},
		{"cached", "", "", ""},
		{"fortunes", "", "", ""},
		{"db", "/db", `{"id":1,"randomNumber":1}`, "all with the id 1"},
		{"db", "/db", `{"id":1}`, "members id and randomNumber"},
		{"db", "/db", `{"id":1,"randomNumber":1,"more":1}`, "members id and randomNumber"},
		{"db", "/db", `{"id":1,"RandomNumber":1}`, "members id and randomNumber"},
		{"db", "/db", `{"id":"1","randomNumber":1}`, "cannot unmarshal"},
		{"db", "/db", "chunked", "Content-Length -1"},
		{"queries", "/queries", `[{"id":1,"randomNumber":1}]`, "1 rows, want 20"},
		{"cached", "/cached", "[" + strings.Repeat(`{"id":1,"randomNumber":1},`, 19) + `{"id":1,"randomNumber":1}]`, "all with the id 1"},
		{"updates", "/updates", "[" + strings.Repeat(`{"id":1,"randomNumber":2},`, 19) + `{"id":2,"randomNumber":2}]`, "row 1 has the number 2, the table world 1"},
		{"fortunes", "/fortunes", "<script>", "at byte"},
	} {
		faults := map[string]string{}
		if test.path != "" {
			faults[test.path] = test.fault
		}
		server := served(t, faults)
		i := slices.IndexFunc(rowChecks, func(c Check) bool { return c.Name == test.check })
		err := rowChecks[i].rows(t.Context(), asker{server.Client(), server.URL}, table{})
		switch {
		case test.complaint == "" && err != nil:
			t.Errorf("%s: %v, want no error", test.check, err)
		case test.complaint != "" && (err == nil || !strings.Contains(err.Error(), test.complaint)):
			t.Errorf("%s: got %v, want an error with %q", test.check, err, test.complaint)
		}
	}
}

func TestChecksWithoutDatabase(t *testing.T) {
	peers, err := Named([]string{"nethttp-db"})
	if err != nil {
		t.Fatal(err)
	}
	server := served(t, nil)
	failed, err := Verify(t.Context(), peers[0], strings.TrimPrefix(server.URL, "http://"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"db", "queries", "updates", "cached", "fortunes", "slow"} {
		if failed[name] != "" {
			t.Errorf("%s: got %s", name, failed[name])
		}
	}
	if failed["wait"] == "" {
		t.Error("the check of wait, which needs no database, was omitted")
	}
}
