/**
 * The JSON Schema compiler. This program part is loaded when the first schema is used
 * (`schemas/workflow/schema-check.ts`).
 */
import addFormats from 'ajv-formats'

export { Ajv2020 } from 'ajv/dist/2020.js'
export const addAllFormats = addFormats.default
