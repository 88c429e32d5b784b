/** What the parts of the conversion of one run configuration share. */
import type { ObjectContext } from '../objects/context.ts'
import type { MigrationDraft } from '../objects/draft.ts'
import type { Reader } from './reader.ts'

export interface RunConfigParts {
  readonly reader: Reader
  /** Name of the object; those made for it begin with it. */
  readonly name: string
  readonly draft: MigrationDraft
  readonly context: ObjectContext
}
