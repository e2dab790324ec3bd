"""The scripts of completion, for each shell (pure).

*Rules*: a script walks over the words before the cursor: a command leads to its own words, the value of an option is passed
over. Words are letters, digits and `-_.=/@`; only help texts need quotes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs


@attrs.frozen
class OptionWords:
    """One option. `values`: those that it may have, if they are known."""

    names: tuple[str, ...]
    help: str
    has_value: bool
    values: tuple[str, ...]
    is_file: bool


@attrs.frozen
class CommandWords:
    """What may stand behind a command. `path`: its words; empty: the program. `words`: values of its arguments."""

    path: str
    commands: Mapping[str, str]
    """Commands below it, and their help."""
    options: tuple[OptionWords, ...]
    words: tuple[str, ...]
    takes_files: bool


def bash(found: Sequence[CommandWords]) -> str:
    """The script for bash 4.4 or later."""
    lines = [
        "# Completion of mailismus in bash. Made by: mailismus completion bash",
        "_mailismus() {",
        '    local line=${COMP_LINE:0:COMP_POINT} path="" option="" current="" choices="" files="" word',
        "    local -a words",
        '    read -ra words <<< "$line"',
        '    if [[ $line != *[[:space:]] ]]; then current=${words[-1]}; unset "words[-1]"; fi',
        '    for word in "${words[@]:1}"; do',
        '        if [[ -n $option ]]; then option=""; continue; fi',
        *_walk(found),
        "    done",
        *_choices(found, 'choices="{}"', 'files="yes"'),
        '    COMPREPLY=($(compgen -W "$choices" -- "$current"))',
        '    if [[ -n $files ]]; then compopt -o filenames; COMPREPLY+=($(compgen -f -- "$current")); fi',
        "    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi",
        '    while [[ -n $current && $COMP_WORDBREAKS != *"${current: -1}"* ]]; do current=${current%?}; done',
        '    COMPREPLY=("${COMPREPLY[@]#"$current"}")',
        "}",
        "complete -F _mailismus mailismus",
    ]
    return "\n".join(lines) + "\n"


def zsh(found: Sequence[CommandWords]) -> str:
    """The script for zsh."""
    lines = [
        "#compdef mailismus",
        "# Completion of mailismus in zsh. Made by: mailismus completion zsh",
        "_mailismus() {",
        '    local place="" option="" current=$words[CURRENT] files="" word',
        "    local -a choices",
        "    for word in ${words[2,CURRENT-1]}; do",
        '        if [[ -n $option ]]; then option=""; continue; fi',
        *_walk(found, "place"),
        "    done",
        *_choices(found, "choices=({})", 'files="yes"', "place"),
        "    local -a open=(${(M)choices:#*=}) whole=(${choices:#*=})",
        '    compadd -S "" -- $open',
        "    compadd -- $whole",
        "    if [[ -n $files ]]; then _files; fi",
        "}",
        'if [[ $funcstack[1] == _mailismus ]]; then _mailismus "$@"; else compdef _mailismus mailismus; fi',
    ]
    return "\n".join(lines) + "\n"


def fish(found: Sequence[CommandWords]) -> str:
    """The script for fish 3 or later."""
    lines = [
        "# Completion of mailismus in fish. Made by: mailismus completion fish",
        "function __mailismus_at",
        '    set -l place ""',
        '    set -l option ""',
        "    for word in (commandline -opc)[2..-1]",
        '        if test -n "$option"',
        '            set option ""',
        "            continue",
        "        end",
        '        switch "$place|$word"',
        f"            case {' '.join(map(_quoted, _options_with_values(found)))}",
        "                set option yes",
        f"            case {' '.join(map(_quoted, _commands(found)))}",
        '                set place (string trim "$place $word")',
        "        end",
        "    end",
        '    test "$place" = "$argv[1]"',
        "end",
        "complete -c mailismus -f",
    ]
    for one in found:
        at = f"complete -c mailismus -n {_quoted(f'__mailismus_at {_quoted(one.path, chr(34))}')}"
        lines += [f"{at} -a {name} -d {_quoted(text)}" for name, text in one.commands.items()]
        for option in one.options:
            names = [f"-{'l' if name.startswith('--') else 's'} {name.lstrip('-')}" for name in option.names]
            value = " -r -F" if option.is_file else f" -x -a {_quoted(' '.join(option.values))}" if option.values else ""
            value = value or (" -x" if option.has_value else "")
            lines.append(f"{at} {' '.join(names)}{value} -d {_quoted(option.help)}")
        if one.words:
            lines.append(f"{at} -a {_quoted(' '.join(one.words))}")
        if one.takes_files:
            lines.append(f"{at} -F")
    return "\n".join(lines) + "\n"


def _quoted(text: str, quote: str = "'") -> str:
    """A text between quotes, for fish."""
    return quote + text.replace("\\", "\\\\").replace(quote, f"\\{quote}") + quote


def _commands(found: Iterable[CommandWords]) -> Iterator[str]:
    """`PATH|WORD` for each word that is a command."""
    for one in found:
        yield from (f"{one.path}|{name}" for name in one.commands)


def _options_with_values(found: Iterable[CommandWords]) -> Iterator[str]:
    """`PATH|OPTION` for each option with a value."""
    for one in found:
        yield from (f"{one.path}|{name}" for option in one.options if option.has_value for name in option.names)


def _walk(found: Sequence[CommandWords], place: str = "path") -> Iterator[str]:
    """The step over one word, for bash and zsh."""
    yield f'        case "${place}|$word" in'
    yield f'            {_cases(_options_with_values(found))}) option="${place}|$word" ;;'
    yield f'            {_cases(_commands(found))}) {place}="${{{place}:+${place} }}$word" ;;'
    yield "        esac"


def _choices(found: Sequence[CommandWords], choose: str, files: str, place: str = "path") -> Iterator[str]:
    """What may stand at the cursor, for bash and zsh."""
    yield "    if [[ -n $option ]]; then"
    yield '        case "$option" in'
    for one in found:
        for option in one.options:
            if option.values or option.is_file:
                act = files if option.is_file else choose.format(" ".join(option.values))
                yield f"            {_cases(f'{one.path}|{name}' for name in option.names)}) {act} ;;"
    yield "        esac"
    yield "    elif [[ $current == -* ]]; then"
    yield f'        case "${place}" in'
    for one in found:
        names = " ".join(name for option in one.options for name in option.names)
        yield f"            {_cases([one.path])}) {choose.format(names)} ;;"
    yield "        esac"
    yield "    else"
    yield f'        case "${place}" in'
    for one in found:
        acts = [choose.format(" ".join([*one.commands, *one.words]))] if one.commands or one.words else []
        acts += [files] if one.takes_files else []
        if acts:
            yield f"            {_cases([one.path])}) {'; '.join(acts)} ;;"
    yield "        esac"
    yield "    fi"


def _cases(patterns: Iterable[str]) -> str:
    return "|".join(f'"{pattern}"' for pattern in patterns)
