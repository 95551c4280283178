# Reads what `cargo test` said and lists each test that failed: its name, the binary that it
# is in, and the beginning of what it says of its failure. All of it is bounded, for it is
# what is read of a run whose whole output nobody has.

BEGIN {
  tests_at_most = 10
  lines_at_most = 5
  line_at_most = 300
}

# `Running tests/x.rs (…/deps/x-0123abc)`, or `Running unittests src/lib.rs (…/deps/y-…)`.
/^ +(Running|Doc-tests) / { tell_unended() }
/^ +Running / {
  binary = $NF
  sub(/.*\//, "", binary)
  sub(/-[0-9a-f]+\)$/, "", binary)
  binary = binary " (" $(NF - 1) ")"
}
/^ +Doc-tests / { binary = "the documentation of " $2 }

/^---- .* stdout ----$/ {
  tell()
  name = $0
  sub(/^---- /, "", name)
  sub(/ stdout ----$/, "", name)
  within = binary
  count = 0
  panicked = 0
  next
}

# Not every test says that it begins; one that takes long is named, and has to end.
/^test .* has been running for over / { running[$2] = 1 }
/^test .* \.\.\. / { delete running[$2] }

/^failures:$/ || /^test result:/ { tell() }
name == "" { next }

# A panic says it best; a test that fails in another way has said it in the beginning.
/^thread .* panicked at / && !panicked { panicked = 1; count = 0 }
/^(stack backtrace:|note: run with)/ && panicked { panicked = 2 }
panicked < 2 && NF && count < lines_at_most { lines[++count] = substr($0, 1, line_at_most) }

END {
  tell()
  tell_unended()
  if (failed > tests_at_most) printf "and %d failed tests more\n", failed - tests_at_most
}

function tell(  n) {
  if (name != "" && ++failed <= tests_at_most) {
    printf "failed test: %s, in %s\n", name, within
    for (n = 1; n <= count; n++) printf "  %s\n", lines[n]
  }
  name = ""
}

# A test binary that was killed says nothing more.
function tell_unended(  test) {
  for (test in running) {
    name = test
    within = binary
    count = 1
    lines[1] = "it did not end"
    tell()
  }
  split("", running)
}
