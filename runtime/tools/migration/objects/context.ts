/** What a conversion knows beside its document, and where it puts the objects that it makes. */
import type { Fields, Violation } from '../../../../schemas/index.ts'

export interface MigrationOptions {
  /** What the admission webhook would say of a manifest. */
  readonly violationsOf: (manifest: Fields) => readonly Violation[]
  /** What a step calls its tool, by the name that it has in the source. */
  readonly tools: ReadonlyMap<string, string>
}

export interface ObjectContext extends MigrationOptions {
  /** Adds an object of the same namespace; returns its name, which has a number when the wanted one is taken. */
  readonly add: (kind: string, name: string, body: Fields) => string
  /** Adds an object that several documents want, unless it is there. */
  readonly share: (kind: string, name: string, body: Fields) => void
}
