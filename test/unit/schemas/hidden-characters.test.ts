/** The rule for hidden characters in its uses: terminals, logs, reports and the console. */
import t from 'tap'
import { forTerminal, oneLine } from '../../../runtime/toolkit/terminal/plain-text.ts'
import { printableName } from '../../../runtime/toolkit/clients/index.ts'
import { piecesOf } from '../../../runtime/console/web/parts/hidden-characters.ts'
import { makeClean } from '../../../runtime/tools/doctor/report/text.ts'
import { visibleText } from '../../../runtime/observe/index.ts'
import { hiddenAnywhere, hiddenInLine, hiddenInText, textLine } from '../../../schemas/index.ts'

/** Inserted between two letters. */
const hidden = [
  '\u0000',
  '\u0007',
  '\u001b',
  '\u007f',
  '\u009b',
  '\u00ad',
  '\u034f',
  '\u061c',
  '\u115f',
  '\u17b4',
  '\u180e',
  '\u200b',
  '\u200c',
  '\u200d',
  '\u200e',
  '\u2028',
  '\u202e',
  '\u2060',
  '\u2066',
  '\u3164',
  '\ufe00',
  '\ufe0f',
  '\ufeff',
  '\uffa0',
  '\ufff9',
  '\u{e0041}',
  '\u{e0100}',
]

/** Emoji, and words of scripts that require joiners. */
const seen = [
  'Grüße, 世界 😀 “x”',
  '\u{1F469}\u{1F3FD}\u200d\u{1F4BB}',
  '\u{1F3F3}\ufe0f\u200d\u{1F308}',
  '❤\ufe0f',
  '1\ufe0f\u20e3',
  'می\u200cخواهم',
  'क्\u200dष',
]

t.test('hidden characters: every use finds each of them between letters', async (t) => {
  const clean = makeClean([])
  for (const one of hidden) {
    const text = `a${one}b`
    const code = one.codePointAt(0)?.toString(16) ?? ''
    for (const pattern of [hiddenAnywhere, hiddenInLine, hiddenInText])
      t.equal(text.replaceAll(pattern, '?'), 'a?b', code)
    t.same(piecesOf(text), ['a', { code: `U+${code.toUpperCase().padStart(4, '0')}`, count: 1 }, 'b'])
    t.equal(visibleText(text), `a\\u{${code}}b`)
    t.equal(printableName(text), 'a?b')
    t.equal(clean(text), 'a\ufffdb')
    t.notMatch(textLine(JSON.stringify({ level: 'info', message: text }), { colour: false }), one)
    // A terminal control character may also remove the next character.
    if (one !== '\u001b' && one !== '\u009b') t.equal(forTerminal(text), 'a\ufffdb', code)
    t.notOk(forTerminal(text).includes(one), code)
  }
})

t.test(
  'hidden characters: joiners that writing requires stay, except where texts are compared',
  async (t) => {
    for (const text of seen) {
      t.equal(text.search(hiddenInLine), -1, text)
      t.same(piecesOf(text), [text])
      t.equal(oneLine(text), text)
      t.equal(printableName(text), text)
    }
    t.equal(visibleText('❤\ufe0f'), '❤\\u{fe0f}')
    t.equal(visibleText('a\ud800'), 'a\\u{d800}')
  },
)

t.test('hidden characters: line breaks and tabs are allowed in texts, not in names', async (t) => {
  const text = 'a\tb\nc\r\nd'
  t.equal(text.search(hiddenInText), -1)
  t.equal(text.replaceAll(hiddenInLine, '?'), 'a?b?c??d')
  t.equal('a\rb'.replaceAll(hiddenInText, '?'), 'a?b', 'a carriage return alone moves back in the line')
})

t.test('hidden characters: a log entry stays on one line, with JSON escapes', async (t) => {
  const line = textLine(JSON.stringify({ level: 'warn', message: 'a\u{e0041}\nb', x: 'c\u202e' }), {
    colour: false,
  })
  t.match(line, 'a\\udb40\\udc41\\u000ab')
  t.match(line, '"c\\u202e"')
})

t.test('a joiner next to an invisible character is still hidden', async (t) => {
  for (const one of ['\ufe00', '\ufe0f', '\u034f', '\u3164', '\u{e0100}'])
    for (const joiner of ['\u200c', '\u200d'])
      for (const pattern of [hiddenInLine, hiddenInText])
        t.equal(`a${one}${joiner}${one}b`.replaceAll(pattern, ''), 'ab', JSON.stringify(one))
})
