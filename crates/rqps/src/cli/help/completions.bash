_rqps() {
    local line=${COMP_LINE:0:COMP_POINT} words current kept IFS=$' \t\n'
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current=${words[${#words[@]}-1]}
    kept=$current
    while [[ -n $kept && $COMP_WORDBREAKS != *"${kept: -1}"* ]]; do kept=${kept%?}; done
    kept=${kept%@}
    local IFS=$'\013'
    COMPREPLY=($(_CLAP_IFS="$IFS" _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) \
        VARIABLE=bash COMPLETER -- "${words[@]}"))
    COMPREPLY=("${COMPREPLY[@]#"$kept"}")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[@=/:] ]] && compopt -o nospace
}
complete -o bashdefault -o nosort -F _rqps BIN
