/** Public API of the catalogue: serves published servers in the form of the MCP registry API. */
export { startCatalogue } from './server.ts'
