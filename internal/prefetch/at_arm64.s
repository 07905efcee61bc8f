#include "textflag.h"

// func At(address uintptr, lines int)
TEXT ·At(SB), NOSPLIT, $0-16
	MOVD address+0(FP), R0
	MOVD lines+8(FP), R1
next:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUBS $1, R1
	BGT  next
	RET
