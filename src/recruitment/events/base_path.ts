/** What the paths of the recruitment service begin with. */
export const base_path = '/recruitment/v1';
