/**
 * Keyword search with an in-memory full-text index and stemming. Returns the best match first.
 *
 * Words match in any inflected form. For example, `creating issues` finds `create_issue`. Parts of names also match. A
 * word with separators is a phrase. Every word is quoted, so searches contain no query syntax. The engine is
 * synchronous, so queries must be short, and callers must add rows in small batches.
 * Source: docs/reference/specification/virtual-server.md#optimizer, config.optimizer; SQLite FTS5 (bm25, porter,
 * unicode61).
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { partWords } from './words.ts'

export interface KeywordRow {
  readonly name: string
  readonly description: string
  /** Names of parameters. */
  readonly parameters: readonly string[]
}

/** Weights of a hit in the name, in the description and in the parameters. */
const weights = '3.0, 1.0, 0.5'

/** Maximum number of hits. Ranking one hit takes about half a microsecond. */
const maxHits = 30_000

export class KeywordIndex {
  readonly #database = new DatabaseSync(':memory:')
  readonly #insert: StatementSync
  readonly #select: StatementSync
  readonly #count: StatementSync
  #closed = false

  constructor() {
    this.#database.exec(`
      CREATE VIRTUAL TABLE tools USING fts5(
        name, description, parameters, content='', tokenize='porter unicode61 remove_diacritics 2');
      INSERT INTO tools(tools, rank) VALUES ('rank', 'bm25(${weights})');
      BEGIN`)
    this.#insert = this.#database.prepare(
      'INSERT INTO tools(rowid, name, description, parameters) VALUES (?, ?, ?, ?)',
    )
    this.#select = this.#database.prepare(
      'SELECT rowid AS at FROM tools WHERE tools MATCH ? ORDER BY rank LIMIT ?',
    )
    this.#count = this.#database.prepare('SELECT count(*) AS hits FROM tools WHERE tools MATCH ?')
  }

  /** Adds the tool at position `at` of the list. */
  add(at: number, { name, description, parameters }: KeywordRow): void {
    this.#insert.run(at, withParts(name), description, parameters.map(withParts).join(' '))
  }

  /** Finishes the index. Call this method once, after the last row and before the first search. */
  finish(): void {
    this.#database.exec('COMMIT')
  }

  /** Returns the positions of the best matches, best first. */
  search(words: readonly string[], limit: number): number[] {
    if (this.#closed) return []
    const query = this.#telling(words).join(' OR ')
    return query === '' ? [] : this.#select.all(query, limit).map((row) => Number(row['at']))
  }

  /**
   * Returns queries for words that have matches, rarest first. Limits the queries so that all hits can be ranked in one
   * turn of the event loop. Omitted words occur in so many tools that they provide little information.
   */
  #telling(words: readonly string[]): string[] {
    const counted = words
      .map((word) => {
        const query = phrases(word)
        return { query, hits: Number(this.#count.get(query)?.['hits'] ?? 0) }
      })
      .filter(({ hits }) => hits > 0)
      .sort((a, b) => a.hits - b.hits)
    let hits = 0
    return counted.flatMap((word, i) => {
      hits += word.hits
      return i === 0 || hits <= maxHits ? [word.query] : []
    })
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#database.close()
  }
}

function withParts(name: string): string {
  const parts = partWords(name)
  return parts === name ? name : `${name} ${parts}`
}

function phrases(word: string): string {
  const parts = partWords(word)
  return parts === word ? quote(word) : `${quote(word)} OR ${quote(parts)}`
}

function quote(text: string): string {
  return `"${text.replaceAll('"', '""').replaceAll('\0', ' ')}"`
}
