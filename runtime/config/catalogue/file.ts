/**
 * Reads the configuration file of a catalogue, and applies defaults. The file contains no secrets.
 * Source: `schemas/runtime/catalogue.json`.
 */
import type { CatalogueFile } from '../../../schemas/index.ts'
import { parseConfig, readConfigText } from '../common/config-file.ts'

/** Content of the file, with all defaults. */
export type CatalogueConfig = CatalogueFile

/** Reads and checks a file. Throws an INVALID_CONFIG error that lists all problems. */
export function loadCatalogueConfig(path: string): CatalogueConfig {
  return parseConfig('catalogue', readConfigText(path), path)
}
