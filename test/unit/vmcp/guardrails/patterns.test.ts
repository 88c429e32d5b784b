/** Texts that the built-in patterns of guardrails match, and texts that they do not match. */
import t from 'tap'
import type { PatternName } from '../../../../runtime/vmcp/features/guardrails/find/patterns.ts'
import { searchedPattern } from '../../../../runtime/vmcp/features/guardrails/find/search.ts'
import { foundIn } from '../../../helpers/vmcp/guardrails/rules.ts'

const key = (prefix: string, length: number): string => `${prefix}${'aB3'.repeat(100).slice(0, length)}`
const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl'
const largeToken = `eyJhbGciOiJIUzI1NiJ9.eyJ${'A'.repeat(9_000)}.abc`
const pem = '-----BEGIN RSA PRIVATE KEY-----\nMIIEow==\n-----END RSA PRIVATE KEY-----'

/** Texts that are themselves JSON, a URL or terminal output: the escape before the match is not part of a word. */
const afterEscapes = (found: string): readonly (readonly [text: string, found: string])[] =>
  ['\\n', 'x\\t', '\\u000a', '\\\\r', '?q=%20', '\u001b[31m', '\u001b[1;32m'].map(
    (before) => [`${before}${found}`, found] as const,
  )

/** Each text, followed by the matches in it. */
const rows: Readonly<Record<PatternName, readonly (readonly [text: string, ...found: string[]])[]>> = {
  apiKey: [
    [`key ${key('ghp_', 36)}.`, key('ghp_', 36)],
    [`TOKEN=${key('github_pat_', 40)}`, key('github_pat_', 40)],
    [key('glpat-', 20), key('glpat-', 20)],
    ['AKIAIOSFODNN7EXAMPLE and more', 'AKIAIOSFODNN7EXAMPLE'],
    [key('AIza', 35), key('AIza', 35)],
    ['xoxb-123456789012-abcdef', 'xoxb-123456789012-abcdef'],
    [key('sk_live_', 24), key('sk_live_', 24)],
    [key('sk-ant-api03-', 40), key('sk-ant-api03-', 40)],
    [key('sk-proj-', 40), key('sk-proj-', 40)],
    [key('npm_', 36), key('npm_', 36)],
    [key('hf_', 34), key('hf_', 34)],
    [`SG.${'a'.repeat(22)}.${'b'.repeat(43)}`, `SG.${'a'.repeat(22)}.${'b'.repeat(43)}`],
    [`${key('ghp_', 36)} ${key('npm_', 36)}`, key('ghp_', 36), key('npm_', 36)],
    ['xAKIAIOSFODNN7EXAMPLE'],
    ['AKIAIOSFODNN7EXAMPLE1'],
    ['sk-short ghp_short sk-learn-like-names-of-packages task-list-of-many-words-in-a-slug'],
    ['the word asia, AKIA and a hf_ prefix'],
    ...afterEscapes('AKIAIOSFODNN7EXAMPLE'),
  ],
  privateKey: [
    [`a ${pem} b`, pem],
    ['-----BEGIN PRIVATE KEY-----\nMIIE', '-----BEGIN PRIVATE KEY-----\nMIIE'],
    [
      '-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1-2\n\nlQ==\n-----END PGP PRIVATE KEY BLOCK----- x',
      '-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1-2\n\nlQ==\n-----END PGP PRIVATE KEY BLOCK-----',
    ],
    [`${pem}${pem}`, pem, pem],
    ['-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----'],
  ],
  jwt: [
    [`Bearer ${token}`, token],
    [`${token},${token}`, token, token],
    [`${token}.aXY.dGFn`, `${token}.aXY.dGFn`],
    [largeToken, largeToken],
    ['cut: eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOi', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOi'],
    ...afterEscapes(token),
    ['eyJhbGci is how it begins, eyJhbGciOiJIUzI1NiJ9. is no token'],
  ],
  email: [
    ['to ada@example.com, please', 'ada@example.com'],
    ['<a.b+c@mail.example.co.uk>', 'a.b+c@mail.example.co.uk'],
    ['jörg@bücher.example', 'jörg@bücher.example'],
    ["o'brien@example.com", "o'brien@example.com"],
    ['a@b.co;c@d.eu', 'a@b.co', 'c@d.eu'],
    ['git@github.com:owner/repo', 'git@github.com'],
    [`${'-'.repeat(80)}ada@example.com`, 'ada@example.com'],
    ['a@b.xn--p1ai', 'a@b.xn--p1ai'],
    ['mailto:ada%40example.com', 'ada%40example.com'],
    ['ada\uff20example.com', 'ada\uff20example.com'],
    ["'ada@example.com'", 'ada@example.com'],
    ['a@b.co@d.eu', 'a@b.co', '@d.eu'],
    ...afterEscapes('ada@example.com'),
    ['@user user@ a@b 3@4.5 price @ 10.00'],
  ],
  iban: [
    ['DE89370400440532013000', 'DE89370400440532013000'],
    ['pay DE89 3704 0044 0532 0130 00 now', 'DE89 3704 0044 0532 0130 00'],
    ['gb82west12345698765432', 'gb82west12345698765432'],
    ['ref AB12 DE89370400440532013000', 'DE89370400440532013000'],
    [
      'DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000',
      'DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000',
    ],
    ...afterEscapes('DE89370400440532013000'),
    ['DE89370400440532013001'],
    ['DE8937040044053201300'],
    ['DE893704004405320130001'],
  ],
  paymentCard: [
    ['4111111111111111', '4111111111111111'],
    ['4111 1111 1111 1111 123', '4111 1111 1111 1111'],
    ['card 5500-0000-0000-0004.', '5500-0000-0000-0004'],
    ['3782 822463 10005', '3782 822463 10005'],
    ['no 1111 4111 1111 1111 1111', '4111 1111 1111 1111'],
    ['17,4111111111111111,12/27', '4111111111111111'],
    ['4111\u202f1111\u202f1111\u202f1111', '4111\u202f1111\u202f1111\u202f1111'],
    ...afterEscapes('4111111111111111'),
    ['4111111111111112'],
    ['0000000000000000 1234567890123'],
    ['0.4111111111111111'],
    ['id-a4111111111111111'],
  ],
}

for (const [name, cases] of Object.entries(rows) as [PatternName, (typeof rows)[PatternName]][]) {
  t.test(`${name} matches the expected texts`, async (t) => {
    for (const [text, ...found] of cases) {
      for (const piece of [text.length, 7, 1])
        t.same(foundIn(searchedPattern(name), text, piece), found, text)
    }
  })

  t.test(`${name}: the matches do not depend on where the text is split`, async (t) => {
    const [[text, ...found]] = cases as [(typeof cases)[number]]
    const filler = 'lorem ipsum '.repeat(5_000)
    const long = `${filler}${text} ${filler}`
    for (const piece of [1_000, 32_768, 65_536]) t.same(foundIn(searchedPattern(name), long, piece), found)
  })
}
