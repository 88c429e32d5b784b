/**
 * V8 creates a function that is written directly into an assignment to a property (`this.f = () => …`) in the old
 * generation, as if it were a method. Made once for each call, it keeps the whole call alive until the next full
 * collection: scavenges promote everything, take ten times as long, and memory grows by that. A field of a class, a
 * method or a constant before the assignment does the same without.
 * Source: V8, src/parsing/parser.h (CheckAssigningFunctionLiteralToProperty).
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const ROOT = join(import.meta.dirname, '..', '..')
const ASSIGNED =
  /[\w\])]\??(?:\.#?\w+|\[[^'\]\n]+\])\s*(?:\?\?|\|\||&&)?=\s*\(*\s*(?:async\s+)?(?:function\b|\w+\s*=>|\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?::[^=;{}()]*)?=>)/g

function offences(source: string): string[] {
  return [...source.matchAll(ASSIGNED)].map(([text]) => text.replaceAll(/\s+/g, ' '))
}

t.test('the pattern finds what it is for, and nothing else', async (t) => {
  for (const text of [
    'this.#f = () => 1',
    'this.f ??= async (a: string, b = g()): Promise<void> => {}',
    'a.b = ((...args: unknown[]) => {}) as F',
    'a[b] = x => x',
    'a.b = function () {}',
  ])
    t.equal(offences(text).length, 1, text)
  for (const text of [
    'const f = () => 1',
    'more: () => readonly string[] = () => []',
    "const f: A['f'] = () => 1",
    'readonly #f = (): void => this.g()',
    'this.#f = f',
    'a.b === ((c) => c)',
    'a.b = g((c) => c)',
    '{ f: () => 1 }',
    'type A = { b: (c: string) => void }',
    'a.b = (c + d)',
  ])
    t.same(offences(text), [], text)
})

t.test('no function is written into an assignment to a property', async (t) => {
  for (const folder of ['runtime', 'schemas']) {
    for (const entry of readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !entry.name.endsWith('.ts')) continue
      const path = join(entry.parentPath, entry.name)
      if (path.includes('/generated/') || path.includes('/console/web/')) continue
      t.same(offences(readFileSync(path, 'utf8')), [], path.slice(ROOT.length + 1))
    }
  }
})
