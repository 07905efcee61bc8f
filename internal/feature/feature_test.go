package feature_test

import (
	"slices"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/feature"
)

func TestSet(t *testing.T) {
	var none *feature.Set[string]
	app := none.With([]string{"a", "b", ""}, true, true)
	group := app.With([]string{"c", "d"}, false, true)
	if none.Observed() || app.Observed() || !group.Observed() || none.Count() != 0 || group.Count() != 3 {
		t.Errorf("got %v, %v, %v", none, app, group)
	}
	if !slices.Equal(group.OfApp(), []string{"a", "b", ""}) || !slices.Equal(group.OfGroups(), []string{"c", "d"}) || len(none.OfApp())+len(none.OfGroups()) > 0 {
		t.Errorf("got %v", group)
	}
	if later := app.With([]string{"e"}, true, false); later.Count() != 4 || app.Count() != 3 || len(app.All()) != 3 {
		t.Errorf("got %v, %v", later, app)
	}
	wraps := func(s string) bool { return s != "" }
	fuse := func(a, b string) (string, bool) { return a + b, b != "d" }
	if got := group.Fused(wraps, fuse); !slices.Equal(got, []string{"abc", "d"}) {
		t.Errorf("got %q", got)
	}
}
