// Package archtest keeps the rules of the house as tests: which folder may
// import which, where unsafe stands, one package comment a folder, no giant
// files, no sleeping tests, a README whose example compiles. A failure names the
// file and the reason for the rule.
//
// The rules hold for the core module; folders with a go.mod of their own are
// left alone.
package archtest
