//go:build !linux

package dunlin

func (a *App) engineStats(*Stats) {}
