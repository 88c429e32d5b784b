/**
 * Recorded results of the conformance and interop tests. `docs/evidence/conformance.md` is generated from these results
 * (`test/conformance/page.ts`). A test fails when its result differs from the recorded result. To record the results
 * again, run the test file with `--update`, then `make schemas`.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { byText } from '../../../schemas/index.ts'
import type { ScenarioResult } from './suite.ts'

const folder = join(import.meta.dirname, '../../fixtures/conformance')

/** One run of the official suite. */
export interface SuiteRun {
  /** What the suite tested, as on the page. Unique in its record. */
  readonly title: string
  readonly mode: 'server' | 'client' | 'authorization'
  /** Revision whose required set ran, or whose wire format the scenarios used. */
  readonly revision?: string
  /** Ids of failed checks by scenario, as in `ScenarioResult`. Empty: the scenario passes. */
  readonly scenarios: Readonly<Record<string, readonly string[]>>
}

/** A client or a server of a cell. */
export interface Peer {
  readonly name: string
  readonly era: 'session' | 'stateless' | 'either'
  readonly transport: 'streamable HTTP' | 'HTTP+SSE' | 'stdio'
}

/** One client connected to one server through Gatehouse. */
export interface Cell {
  readonly client: Peer
  readonly through: string
  readonly server: Peer
  /** Names of the operations that passed. */
  readonly operations: readonly string[]
}

export interface ConformanceRecord {
  readonly runs: readonly SuiteRun[]
  readonly cells: readonly Cell[]
}

/** Collects the results of one test file. */
export class Recorder {
  readonly #name: string
  readonly #runs: SuiteRun[] = []
  readonly #cells: Cell[] = []

  constructor(name: string) {
    this.#name = name
  }

  addRun(
    run: Omit<SuiteRun, 'scenarios'>,
    scenarios: ReadonlyMap<string, Pick<ScenarioResult, 'failed'>>,
  ): void {
    const sorted = [...scenarios].toSorted(([a], [b]) => byText(a, b))
    this.#runs.push({
      ...run,
      scenarios: Object.fromEntries(sorted.map(([name, { failed }]) => [name, failed])),
    })
  }

  /** Returns a function that adds a passed operation. */
  addCell(cell: Omit<Cell, 'operations'>): (operation: string) => void {
    const operations: string[] = []
    this.#cells.push({ ...cell, operations })
    return (operation) => void operations.push(operation)
  }

  /** Adds a cell whose operations ran in one test. None of them counts if the test has failed. */
  addTested(t: Test, cell: Cell): void {
    this.#cells.push({ ...cell, operations: t.passing() ? cell.operations : [] })
  }

  /** Compares all results with the recorded ones. Call it after the last result. */
  compare(t: Test): void {
    const path = join(folder, `${this.#name}.json`)
    const results: ConformanceRecord = { runs: this.#runs, cells: this.#cells }
    if (process.argv.includes('--update')) {
      mkdirSync(folder, { recursive: true })
      writeFileSync(path, `${JSON.stringify(results, undefined, 2)}\n`)
    }
    const recorded: unknown = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : undefined
    t.strictSame(results, recorded, 'as recorded; to record it again, run this file with --update')
  }
}

/** Returns all records by name. */
export function readRecords(): ReadonlyMap<string, ConformanceRecord> {
  const files = readdirSync(folder).toSorted(byText)
  return new Map(
    files.map((file) => [file.replace('.json', ''), JSON.parse(readFileSync(join(folder, file), 'utf8'))]),
  )
}
