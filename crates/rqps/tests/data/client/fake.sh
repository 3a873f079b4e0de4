#!/bin/sh
# A client that hangs, lies and dies as its option `fault` says. For tests.
fault=none
while read -r line; do
    case $line in
    *'"hello":'*) echo '{"hello":1,"steps":[{"name":"get","group":"point"},{"name":"set"}],"load":true}' ;;
    *'"open":'*)
        case $line in
        *'"fault":"'*) fault=${line##*'"fault":"'} && fault=${fault%%'"'*} ;;
        esac
        case $fault-$line in
        refuse-*) echo '{"error":"no such server"}' ;;
        hidden-*'"target":"die'*) fault=die && echo '{}' ;;
        *) echo '{"version":"Fake 1.2"}' ;;
        esac
        ;;
    *'"load":'*)
        rows=0
        while [ "$fault" = same ]; do echo '{"loading":5}'; done
        while [ "$fault" = more ]; do rows=$((rows + 1)) && echo "{\"loading\":$rows}"; done
        echo '{"loading":5}' && echo '{"rows":10}'
        ;;
    *'"prepare":'*) echo '{}' ;;
    *'"run":'*)
        us=${line##*:} && us=${us%\}}
        good='{"n":2,"us":'$us',"hist":{"900":1,"50":1}}'
        case $fault in
        hang) sleep 600 ;;
        clock) echo '{"n":1,"us":1e12,"hist":{"5":1}}' ;;
        negative) echo '{"n":-3,"us":2,"hist":{}}' ;;
        nan) echo '{"n":NaN,"us":2,"hist":{}}' ;;
        garbage) printf 'Hello,\033[31m world\n' ;;
        flood) exec cat /dev/zero ;;
        twice) sleep "$(printf '0.%06d' "$us")" && printf '%s\n%s\n' "$good" "$good" ;;
        die) echo 'no route to host' >&2 && exit 3 ;;
        early) echo '{"n":1,"us":2,"hist":{"900":1}}' ;;
        errors) sleep "$(printf '0.%06d' "$us")" && echo "${good%\}},\"errors\":{\"busy\":4}}" ;;
        many)
            runs=$((${runs:-0} + 1)) && sleep "$(printf '0.%06d' "$us")"
            echo "${good%\}},\"errors\":{$(seq -f "\"e$runs-%g\":1" -s, 60)}}"
            ;;
        slow) sleep 0.3 && sleep "$(printf '0.%06d' "$us")" && echo "$good" ;;
        *) sleep "$(printf '0.%06d' "$us")" && echo "$good" ;;
        esac
        ;;
    esac
done
