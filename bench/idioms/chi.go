package idioms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

type chiUser struct{}

// Chi returns the service on chi.
func Chi() http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.Recoverer)

	r.Get("/users/{id:[0-9]+}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(chi.URLParam(r, "id"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		u, ok := findUser(id)
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(u)
	})

	r.Route("/admin", func(r chi.Router) {
		r.Use(chiKey)
		r.Post("/users", chiCreate)
		r.Get("/me", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Context().Value(chiUser{}))
		})
	})
	return r
}

func chiCreate(w http.ResponseWriter, r *http.Request) {
	var in User
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<20)).Decode(&in); err != nil || in.Name == "" {
		http.Error(w, "name is required", http.StatusBadRequest)
		return
	}
	u := addUser(in.Name)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", fmt.Sprintf("/users/%d", u.ID))
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(u)
}

func chiKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := ownerOf(r.Header.Get("X-Key"))
		if name == "" {
			http.Error(w, "unknown key", http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Served-For", name) // must be set before the handler writes
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chiUser{}, name)))
	})
}

// ServeChi serves until it receives a signal, and then waits for running requests.
func ServeChi() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	server := &http.Server{Addr: ":8080", Handler: Chi(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
