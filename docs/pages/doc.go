// Package pages has the code of the pages in docs/middleware, of docs/CONTENT.md, docs/GUIDE-typed.md and docs/DEPLOY.md, in tests: a test of
// internal/archtest looks each block of these pages up here, or in the module it is about.
package pages
