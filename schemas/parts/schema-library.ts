/**
 * The JSON Schema compiler. A program part that is loaded with the first schema (`schemas/workflow/schema-check.ts`).
 */
import addFormats from 'ajv-formats'

export { Ajv2020 } from 'ajv/dist/2020.js'
export const addAllFormats = addFormats.default
