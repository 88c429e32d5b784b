import t from 'tap'
import { splitCommand } from '../../../runtime/toolkit/local/command-line.ts'

t.test('command line: words, quotes and escapes are parsed like in a shell', async (t) => {
  t.same(splitCommand('npx -y  server'), ['npx', '-y', 'server'])
  t.same(splitCommand(`a 'b c' "d 'e'" f\\ g ""`), ['a', 'b c', "d 'e'", 'f g', ''])
  t.same(splitCommand('"a\\"b" \'c\\d\''), ['a"b', 'c\\d'])
})

t.test('command line: shell syntax is rejected, not passed on', async (t) => {
  for (const line of ['a | b', 'a; b', 'a && b', 'a > f', 'a $HOME', 'a `b`', 'a $(b)']) {
    t.match(splitCommand(line), /needs a shell/, line)
  }
  t.same(splitCommand(`a '$HOME|x'`), ['a', '$HOME|x'], 'quoted characters are only characters')
  t.equal(splitCommand('a "b'), 'the quote " is not closed')
  t.equal(splitCommand('  '), 'the command is empty')
})
