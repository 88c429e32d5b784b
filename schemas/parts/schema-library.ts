/**
 * The JSON Schema compiler. A program loads this module when it first uses a schema
 * (`schemas/workflow/schema-check.ts`).
 */
import addFormats from 'ajv-formats'

export { Ajv2020 } from 'ajv/dist/2020.js'
export const addAllFormats = addFormats.default
