import { ModuleError } from '../../../schemas/index.ts'

/** The registry's entry is missing, deleted, changed, invalid, or asks for something that Gatehouse rejects. */
export class EntryRejected extends ModuleError {}
