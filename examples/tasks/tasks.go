package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

func init() {
	typed.Format("line", "a line of text", func(s string) bool { return !strings.ContainsFunc(s, unicode.IsControl) })
}

// A Task is something that a user has to do.
type Task struct {
	ID    int64     `json:"id"`
	Title string    `json:"title"`
	Due   time.Time `json:"due"`
	Done  bool      `json:"done"`
}

// CreateTask creates a task.
type CreateTask struct {
	Body struct {
		Title string    `json:"title" minLength:"1" maxLength:"200" format:"line" example:"Buy tea"`
		Due   time.Time `json:"due"`
	}
}

func (s *service) create(r *dunlin.Request, in CreateTask) (typed.Created[Task], error) {
	t := Task{Title: in.Body.Title, Due: in.Body.Due}
	err := s.db.QueryRow(r.Context(), `insert into tasks (owner, title, due) values ($1, $2, $3) returning id`,
		user(r), t.Title, t.Due).Scan(&t.ID)
	return typed.Created[Task]{Location: "/tasks/" + strconv.FormatInt(t.ID, 10), Body: t}, err
}

// ListTasks lists the tasks of the user in pages.
type ListTasks struct {
	typed.PageQuery
}

func (s *service) list(r *dunlin.Request, in ListTasks) (typed.Page[Task], error) {
	after, err := s.pages.After(in.Cursor)
	if err != nil {
		return typed.Page[Task]{}, err
	}
	rows, err := s.db.Query(r.Context(), `select id, title, due, done from tasks
		where owner = $1 and ($2::bigint is null or id > $2) order by id limit $3`,
		user(r), after, in.Limit+1)
	if err != nil {
		return typed.Page[Task]{}, err
	}
	tasks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Task])
	return s.pages.Page(tasks, in.Limit), err
}

// TaskID is the ID of a task in the path.
type TaskID struct {
	ID int64 `path:"id"`
}

var noTask = typed.NewFault(404, "no-task", "There is no such task")

func (s *service) show(r *dunlin.Request, in TaskID) (Task, error) {
	rows, err := s.db.Query(r.Context(), `select id, title, due, done from tasks where id = $1 and owner = $2`,
		in.ID, user(r))
	return one(rows, err)
}

// UpdateTask changes a task.
type UpdateTask struct {
	TaskID
	Body struct {
		Title string    `json:"title" minLength:"1" maxLength:"200" format:"line"`
		Due   time.Time `json:"due"`
		Done  bool      `json:"done"`
	}
}

func (s *service) update(r *dunlin.Request, in UpdateTask) (Task, error) {
	rows, err := s.db.Query(r.Context(), `update tasks set title = $3, due = $4, done = $5
		where id = $1 and owner = $2 returning id, title, due, done`,
		in.ID, user(r), in.Body.Title, in.Body.Due, in.Body.Done)
	return one(rows, err)
}

func (s *service) remove(r *dunlin.Request, in TaskID) (typed.None, error) {
	tag, err := s.db.Exec(r.Context(), `delete from tasks where id = $1 and owner = $2`, in.ID, user(r))
	if err == nil && tag.RowsAffected() == 0 {
		err = noTask
	}
	return typed.None{}, err
}

// one returns the only row as a task.
func one(rows pgx.Rows, err error) (Task, error) {
	if err != nil {
		return Task{}, err
	}
	t, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Task])
	if errors.Is(err, pgx.ErrNoRows) {
		err = noTask
	}
	return t, err
}
