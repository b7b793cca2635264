#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The output of --completion is valid in each shell, and it offers every option, and words where
# there are some.
. "$(dirname "$0")/lib"

"$PROFTOP" --help | grep -oE -e '^ .*' | grep -oE -e '--[a-z][a-z-]*' | sort -u >"$TMP/options"
[ "$(wc -l <"$TMP/options")" -gt 30 ] || wrong "--help has but $(wc -l <"$TMP/options") options"

# A shell offers all options (a line each, perhaps with text behind).
offers_all()
{
	sed 's/^\(--[a-z-]*\).*/\1/' "$2" | sort -u | comm -23 "$TMP/options" - >"$TMP/missing"
	[ -s "$TMP/missing" ] && wrong "$1 does not offer: $(cat "$TMP/missing")"
}

"$PROFTOP" --completion=bash >"$TMP/bash" || wrong "--completion=bash: exit $?"
if command -v bash >/dev/null; then
	bash -n "$TMP/bash" || wrong "bash does not take it"
	bash -c '. "$1"; COMP_WORDS=(proftop --) COMP_CWORD=1; _proftop; printf "%s\n" "${COMPREPLY[@]}"' - "$TMP/bash" >"$TMP/offered"
	offers_all bash "$TMP/offered"
	got=$(bash -c '. "$1"; COMP_WORDS=(proftop --theme = l) COMP_CWORD=3; _proftop; echo "${COMPREPLY[*]}"' - "$TMP/bash")
	[ "$got" = light ] || wrong "bash: --theme=l completes to '$got'"
fi
"$PROFTOP" --completion=zsh >"$TMP/_proftop" || wrong "--completion=zsh: exit $?"
if command -v zsh >/dev/null; then
	zsh -fn "$TMP/_proftop" || wrong "zsh does not take it"
	# The specifications as _arguments gets them, each with its option.
	zsh -fc '_arguments() { printf "%s\n" "$@"; }; . "$1"' - "$TMP/_proftop" >"$TMP/offered"
	sed -i 's/\[.*//; s/=$//' "$TMP/offered"
	offers_all zsh "$TMP/offered"
fi
"$PROFTOP" --completion=fish >"$TMP/fish" || wrong "--completion=fish: exit $?"
if command -v fish >/dev/null; then
	fish --no-config -n "$TMP/fish" || wrong "fish does not take it"
	fish --no-config -c "source $TMP/fish; complete -C 'proftop --'" >"$TMP/offered"
	offers_all fish "$TMP/offered"
	got=$(fish --no-config -c "source $TMP/fish; complete -C 'proftop --theme=l'")
	case $got in --theme=light*) ;; *) wrong "fish: --theme=l completes to '$got'" ;; esac
fi
finish
