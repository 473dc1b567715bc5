# The editions after release.toml. Run by `make example NAME=losses`; by hand: sh editions.sh
set -e
tetraodon release second.toml --out published/second

# Refused, nothing spent: the account has a total of 1 and third.toml states more.
if tetraodon release third.toml --out published/third; then exit 1; fi

# Somebody has to decide it, and to say why; the reason stands in every later report.
tetraodon ledger raise losses.ledger --to 6/5 --reason "A third edition was ordered"
tetraodon release third.toml --out published/third
