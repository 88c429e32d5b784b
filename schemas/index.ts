/** The door of the contract room: what hooks and runtime may import. */
export { type ErrorCode, GatehouseError, type ErrorOptions, errors } from './errors.ts'
