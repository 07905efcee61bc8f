create table if not exists users (
	id       bigint generated always as identity primary key,
	name     text not null unique,
	password bytea not null,
	salt     bytea not null
);
create table if not exists tasks (
	id    bigint generated always as identity primary key,
	owner bigint not null references users on delete cascade,
	title text not null,
	due   timestamptz not null,
	done  boolean not null default false
);
create index if not exists tasks_by_owner on tasks (owner, id);
